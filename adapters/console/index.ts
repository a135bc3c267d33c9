/**
 * The console, mounted in an element of a page.
 *
 * @packageDocumentation
 */

export type { ConsoleOptions } from './mount.tsx'
export { mountConsole } from './mount.tsx'
