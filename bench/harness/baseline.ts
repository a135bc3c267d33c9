import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Another revision of the package, built in a worktree of its own. */
export class Baseline {
  readonly revision: string
  readonly dist: string
  readonly #worktree: string

  constructor(revision: string) {
    this.revision = execFileSync('git', ['rev-parse', '--short', revision], { encoding: 'utf8' }).trim()
    this.#worktree = join(mkdtempSync(join(tmpdir(), 'headwater-baseline-')), 'headwater')
    this.dist = join(this.#worktree, 'dist')
    execFileSync('git', ['worktree', 'add', '--detach', this.#worktree, revision], { stdio: 'ignore' })
    symlinkSync(join(process.cwd(), 'node_modules'), join(this.#worktree, 'node_modules'))
    execFileSync('npm', ['run', 'build:js'], { cwd: this.#worktree, stdio: 'ignore' })
  }

  remove(): void {
    execFileSync('git', ['worktree', 'remove', '--force', this.#worktree])
    rmSync(join(this.#worktree, '..'), { recursive: true, force: true })
  }
}
