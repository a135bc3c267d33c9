import type { RunnerTask, RunnerTestFile } from 'vitest'
import { VitestTestRunner } from 'vitest/runners'
import { ACCESS } from '../access.ts'
import { EXCEPTIONS } from './exceptions.ts'

/** Leaves out the tests that a client cannot pass: see `exceptions.ts`. */
export default class ThroughClientRunner extends VitestTestRunner {
  onCollected(files: RunnerTestFile[]): void {
    for (const file of files) leaveOut(file)
  }
}

function leaveOut(file: RunnerTestFile): void {
  for (const exception of Object.values(EXCEPTIONS).flat()) {
    const { file: path, title, access = ACCESS } = exception
    if (access !== ACCESS || !file.filepath.endsWith(`/test/engine/${path}`)) continue
    const left = testsOf(file).filter(({ name }) => name.includes(title))
    if (left.length === 0) throw new Error(`exceptions.ts names no test of ${path}: ${title}`)
    for (const test of left) test.mode = 'skip'
  }
}

function testsOf(task: RunnerTask): RunnerTask[] {
  return task.type === 'suite' ? task.tasks.flatMap(testsOf) : [task]
}
