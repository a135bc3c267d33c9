/// <reference path="./assets.d.ts" />
import type { ConsoleOptions } from './options.ts'
import consoleProgram from './program.tsx?function'

export type { ConsoleOptions } from './options.ts'

let program: typeof import('./program.tsx') | undefined

/**
 * Shows the console inside an element, and returns a function that removes it. Its styles and those of the
 * page do not affect each other. Throws `RangeError` for invalid options.
 *
 * ```ts
 * const handler = createHandler(hw, { auth: 'none' })
 * const remove = mountConsole(document.body, { fetch: handler })
 * ```
 */
export function mountConsole(element: Element, options: ConsoleOptions): () => void {
  program ??= consoleProgram() as typeof import('./program.tsx')
  return program.mountConsole(element, options)
}
