const INTERVAL_MS = 20

/** Waits until `condition` returns a truthy value, and resolves to it. */
export async function until(subject, condition, timeoutMs = 10_000) {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value) return value
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms for ${subject}`)
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS))
  }
}
