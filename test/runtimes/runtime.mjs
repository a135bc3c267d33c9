import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A test that hangs fails. */
const TEST_MS_MAX = 60_000

export const RUNTIME =
  process.versions.bun !== undefined
    ? `Bun ${process.versions.bun}`
    : process.versions.deno !== undefined
      ? `Deno ${process.versions.deno}`
      : `Node ${process.versions.node}`

export async function temporaryDirectory() {
  return mkdtemp(join(tmpdir(), 'headwater-runtime-'))
}

export async function remove(directory) {
  await rm(directory, { recursive: true, force: true })
}

/** Runs tests, `{ title, skip, run }`, in sequence, prints the failures, and exits. */
export async function runTests(subject, tests) {
  const failures = []
  const wanted = tests.filter(({ skip }) => skip === undefined)
  for (const { title, run } of wanted) {
    try {
      await inTime(run())
    } catch (error) {
      failures.push(title)
      console.error(`${RUNTIME}, ${subject}: ${title}\n${error?.stack ?? error}`)
    }
  }
  const skipped = tests.length - wanted.length
  console.log(
    `${RUNTIME}, ${subject}: ${wanted.length} tests, ${failures.length} failed, ${skipped} do not apply`,
  )
  return failures.length === 0
}

async function inTime(work) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not finished within ${TEST_MS_MAX} ms`)), TEST_MS_MAX)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
