/**
 * Resolves in a later turn of the event loop, after all microtasks: with `setImmediate` if there is one,
 * otherwise with a message, because browsers delay nested `setTimeout(0)` by 4 ms. Chosen when the module
 * loads, so that fake timers of a test runner, installed later, do not stop it.
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
