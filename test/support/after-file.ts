type Cleanup = () => void | Promise<void>

const cleanups = new Set<Cleanup>()

/**
 * Calls a function after the tests of every file that this process runs from now on. Helpers use it instead
 * of `afterAll`: the files share a process, which loads a helper once.
 */
export function afterEachFile(cleanup: Cleanup): void {
  cleanups.add(cleanup)
}

export async function cleanUpAfterFile(): Promise<void> {
  for (const cleanup of cleanups) await cleanup()
}
