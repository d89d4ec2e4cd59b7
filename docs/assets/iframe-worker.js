// The search runs in a worker, which browsers refuse to pages that are opened
// from a disk. There a hidden frame takes the place of the worker.
(() => {
  if (location.protocol !== "file:") return

  class FrameWorker extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      inside.document.open()
      inside.document.write(
        "<!doctype html><script>" +
        "window.postMessage = data => parent.dispatchEvent(" +
        "  new CustomEvent('frame-worker', { detail: { data, from: window } }));" +
        "window.importScripts = (...urls) => urls.reduce((before, url) =>" +
        "  before.then(() => new Promise((done, failed) => {" +
        "    const script = document.createElement('script');" +
        "    script.src = url; script.onload = done; script.onerror = failed;" +
        "    document.body.appendChild(script) })), Promise.resolve());" +
        "</script><body><script src='" + url + "'></script></body>"
      )
      inside.document.close()
      this.ready = new Promise(done => { this.frame.onload = done })
      window.addEventListener("frame-worker", ({ detail }) => {
        if (detail.from !== this.frame.contentWindow) return
        const message = new MessageEvent("message", { data: detail.data })
        this.dispatchEvent(message)
        if (this.onmessage) this.onmessage(message)
      })
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(
        new MessageEvent("message", { data })
      ))
    }

    terminate() {
      this.frame.remove()
    }
  }

  window.Worker = FrameWorker
})()
