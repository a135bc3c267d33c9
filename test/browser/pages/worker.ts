import type { Call, Outcome } from './worker-caller.ts'

self.onmessage = async ({ data }: MessageEvent<Call>) => {
  self.postMessage(await outcomeOf(data))
}

async function outcomeOf({ path, name, args }: Call): Promise<Outcome> {
  try {
    const module: Record<string, (...args: readonly unknown[]) => unknown> = await import(path)
    return { result: await module[name]!(...args) }
  } catch (error) {
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}
