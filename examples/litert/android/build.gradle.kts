// The parts of an app module's build file that the embedder needs.
plugins {
    id("com.android.application")
    id("org.jetbrains.kotlin.android")
}

android {
    namespace = "com.example.embedder"
    compileSdk = 35

    defaultConfig {
        minSdk = 26
    }

    androidResources {
        // The model is mapped into memory, so it must lie there as it is.
        noCompress += listOf("tflite", "bin")
    }
}

dependencies {
    // LiteRT 1.x has the interpreter under its old name, org.tensorflow.lite.
    implementation("com.google.ai.edge.litert:litert:1.4.2")
}
