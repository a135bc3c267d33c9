/**
 * The console, mounted in an element of a page.
 *
 * @packageDocumentation
 */

export type { ConsoleOptions } from './options.ts'
export { mountConsole } from './program.tsx'
