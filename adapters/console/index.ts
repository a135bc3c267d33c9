export { mountConsole } from './mount.tsx'
export type { ConsoleOptions } from './options.ts'
