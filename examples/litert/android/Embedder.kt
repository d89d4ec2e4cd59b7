package com.example.embedder

import android.content.Context
import android.graphics.Bitmap
import android.graphics.Canvas
import android.graphics.Color
import android.graphics.Matrix
import android.graphics.Paint
import org.json.JSONObject
import org.tensorflow.lite.Interpreter
import java.io.Closeable
import java.io.FileInputStream
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.channels.FileChannel
import kotlin.math.min
import kotlin.math.round

/**
 * Turns a photo into its embedding, with a file of `keras-dml export`.
 *
 * Copy `embedder.tflite` and `manifest.json` of the exported folder into
 * `src/main/assets/embedder/`, and `references.bin` and `references.json` too,
 * if the app searches them. An embedder is not safe to share by threads.
 *
 * @param folder where the files lie among the assets.
 * @param threads how many threads LiteRT uses.
 */
class Embedder(
    context: Context,
    folder: String = "embedder",
    threads: Int = 4,
) : Closeable {
    private val manifest = JSONObject(readText(context, "$folder/manifest.json"))
    private val image = manifest.getJSONObject("image")
    private val width = image.getInt("width")
    private val height = image.getInt("height")
    private val channels = image.getInt("channels")
    private val resize = image.getInt("resize")
    private val squash = image.getBoolean("squash")

    /** How many values an embedding has. */
    val dim: Int = manifest.getJSONObject("embedding").getInt("dim")

    private val interpreter = Interpreter(
        mapModel(context, "$folder/${manifest.getString("file")}"),
        Interpreter.Options().setNumThreads(threads),
    )
    private val pixels = ByteBuffer
        .allocateDirect(width * height * channels)
        .order(ByteOrder.nativeOrder())

    init {
        val expected = intArrayOf(1, height, width, channels)
        val found = interpreter.getInputTensor(0).shape()
        require(manifest.getBoolean("dynamic_batch") || found.contentEquals(expected)) {
            "The model takes ${found.contentToString()}, its manifest says " +
                "${expected.contentToString()}: the files are of two exports."
        }
        interpreter.resizeInput(0, expected)
        interpreter.allocateTensors()
    }

    /** The embedding of a bitmap of any size; turn it upright before. */
    fun embed(bitmap: Bitmap): FloatArray {
        fill(pixels, prepare(bitmap))
        val embedding = Array(1) { FloatArray(dim) }
        interpreter.run(pixels, embedding)
        return embedding[0]
    }

    override fun close() = interpreter.close()

    /** Resizes and cuts the square in the center, transparent parts white. */
    private fun prepare(source: Bitmap): Bitmap {
        val shorter = min(source.width, source.height)
        val newWidth = if (squash) resize else resize * source.width / shorter
        val newHeight = if (squash) resize else resize * source.height / shorter
        val shrunk = halveDown(onWhite(source), newWidth, newHeight)
        val result = Bitmap.createBitmap(width, height, Bitmap.Config.ARGB_8888)
        val left = round((newWidth - width) / 2f).toInt()
        val top = round((newHeight - height) / 2f).toInt()
        val matrix = Matrix().apply {
            setScale(
                newWidth.toFloat() / shrunk.width,
                newHeight.toFloat() / shrunk.height,
            )
            postTranslate(-left.toFloat(), -top.toFloat())
        }
        Canvas(result).drawBitmap(shrunk, matrix, Paint(Paint.FILTER_BITMAP_FLAG))
        return result
    }

    private fun onWhite(source: Bitmap): Bitmap {
        val result = Bitmap.createBitmap(
            source.width, source.height, Bitmap.Config.ARGB_8888,
        )
        // A canvas in memory cannot draw what lies in the memory of the GPU.
        val readable = if (source.config == Bitmap.Config.HARDWARE) {
            source.copy(Bitmap.Config.ARGB_8888, false)
        } else {
            source
        }
        Canvas(result).apply {
            drawColor(Color.WHITE)
            drawBitmap(readable, 0f, 0f, null)
        }
        return result
    }

    /**
     * Halves while the image is at least twice too large. Android filters four
     * neighbors only: without it a large photo is resized with aliasing, and
     * its embedding is not the one that training saw.
     */
    private fun halveDown(source: Bitmap, toWidth: Int, toHeight: Int): Bitmap {
        var current = source
        while (current.width >= 2 * toWidth && current.height >= 2 * toHeight) {
            current = Bitmap.createScaledBitmap(
                current, current.width / 2, current.height / 2, true,
            )
        }
        return current
    }

    /** Writes RGB, or the gray of Pillow's `L`, row by row. */
    private fun fill(buffer: ByteBuffer, bitmap: Bitmap) {
        val colors = IntArray(width * height)
        bitmap.getPixels(colors, 0, width, 0, 0, width, height)
        buffer.rewind()
        for (color in colors) {
            val red = Color.red(color)
            val green = Color.green(color)
            val blue = Color.blue(color)
            if (channels == 1) {
                val gray = (red * 19595 + green * 38470 + blue * 7471 + 32768) shr 16
                buffer.put(gray.toByte())
            } else {
                buffer.put(red.toByte())
                buffer.put(green.toByte())
                buffer.put(blue.toByte())
            }
        }
        buffer.rewind()
    }
}

/** The int8 embeddings of known images, and a search over all of them. */
class References(context: Context, folder: String = "embedder") {
    private val notes = JSONObject(readText(context, "$folder/references.json"))
    private val count = notes.getInt("rows")
    private val dim = notes.getInt("dim")
    private val scale = notes.getDouble("scale").toFloat()
    private val labels = notes.getJSONArray("labels")
    private val ids = notes.getJSONArray("ids")
    private val rows = context.assets.open("$folder/references.bin").use { it.readBytes() }

    init {
        require(rows.size == count * dim) {
            "references.bin has ${rows.size} bytes, references.json says $count x $dim."
        }
    }

    /** One of the references and its cosine to the query. */
    data class Match(val id: String, val label: String, val cosine: Float)

    /** The `k` nearest images, the nearest first. */
    fun search(embedding: FloatArray, k: Int = 5): List<Match> {
        require(embedding.size == dim) {
            "The references have $dim dimensions. Received: ${embedding.size}"
        }
        val scores = FloatArray(count) { row ->
            var sum = 0f
            val start = row * dim
            for (i in 0 until dim) sum += embedding[i] * rows[start + i]
            scale * sum
        }
        return scores.indices
            .sortedByDescending { scores[it] }
            .take(k)
            .map { Match(ids.getString(it), labels.getString(it), scores[it]) }
    }
}

private fun readText(context: Context, path: String): String =
    context.assets.open(path).bufferedReader().use { it.readText() }

private fun mapModel(context: Context, path: String): ByteBuffer =
    context.assets.openFd(path).use { file ->
        FileInputStream(file.fileDescriptor).use { stream ->
            stream.channel.map(
                FileChannel.MapMode.READ_ONLY, file.startOffset, file.declaredLength,
            )
        }
    }
