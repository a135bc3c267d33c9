import { onTestFinished, vi } from 'vitest'
import { Evidence } from './evidence.ts'

/** Collects evidence for one test, including everything that the process prints. */
export function collect(): Evidence {
  const evidence = new Evidence()
  const spies = (['log', 'info', 'warn', 'error', 'debug', 'trace'] as const).map((method) =>
    vi.spyOn(console, method).mockImplementation((...args) => evidence.add('printed', method, args)),
  )
  const warned = (warning: Error) => evidence.add('printed', 'a warning', warning)
  process.on('warning', warned)
  onTestFinished(() => {
    process.off('warning', warned)
    for (const spy of spies) spy.mockRestore()
  })
  return evidence
}
