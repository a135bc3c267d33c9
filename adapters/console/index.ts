export type { ConsoleOptions } from './options.ts'
export { mountConsole } from './program.tsx'
