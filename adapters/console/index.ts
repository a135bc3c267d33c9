export { type ConsoleOptions, mountConsole } from './mount.tsx'
