import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** What opening a directory took. */
export interface Opening {
  readonly wallMs: number
  /** Of all threads. */
  readonly cpuMs: number
  /** By how much the memory of the process grew, garbage left out. */
  readonly rssBytes: number
}

const CHILD = fileURLToPath(new URL('opening-child.js', import.meta.url))

/** In a process that has done nothing else. */
export function openInChild(directory: string): Promise<Opening> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--expose-gc', CHILD, directory], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    child.on('error', reject)
    child.on('close', (code) => {
      if (code === 0) resolve(JSON.parse(output) as Opening)
      else reject(new Error(`opening ${directory} ended with code ${code}`))
    })
  })
}
