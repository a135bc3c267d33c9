/** Opens the directory that it is told and prints what that took: see `harness/open-in-child.ts`. */
import { openHeadwater } from './harness/headwater.ts'
import type { Opening } from './harness/open-in-child.ts'

/** One collection leaves pages that the next gives back. */
const COLLECTIONS = 3

const { gc } = globalThis
const [, , directory] = process.argv
if (directory === undefined || gc === undefined) {
  throw new Error('usage: node --expose-gc opening-child.js <directory>')
}
const collectGarbage = gc

settle()
const rss = process.memoryUsage.rss()
const cpu = process.cpuUsage()
const start = performance.now()
const headwater = await openHeadwater(directory)
const wallMs = performance.now() - start
const { user, system } = process.cpuUsage(cpu)
settle()
const opening: Opening = {
  wallMs,
  cpuMs: (user + system) / 1000,
  rssBytes: process.memoryUsage.rss() - rss,
}
await headwater.close()
console.log(JSON.stringify(opening))

function settle(): void {
  for (let i = 0; i < COLLECTIONS; i++) collectGarbage()
}
