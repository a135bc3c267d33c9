/**
 * Resolves in a later turn of the event loop, when all microtasks are done: by `setImmediate` where there is one, else
 * by a message, for a browser delays nested `setTimeout(0)` by 4 ms. Taken when the module loads, so that a test
 * runner's fake timers, installed later, do not stop it.
 */
export const macrotask: () => Promise<void> = chooseMacrotask()

function chooseMacrotask(): () => Promise<void> {
  const { setImmediate, MessageChannel, setTimeout } = globalThis
  if (typeof setImmediate === 'function') return () => new Promise((resolve) => setImmediate(resolve))
  if (typeof MessageChannel === 'function') {
    return () =>
      new Promise((resolve) => {
        const { port1, port2 } = new MessageChannel()
        port1.onmessage = () => {
          port1.close()
          resolve()
        }
        port2.postMessage(null)
      })
  }
  return () => new Promise((resolve) => setTimeout(resolve, 0))
}
