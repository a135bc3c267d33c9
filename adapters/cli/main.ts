#!/usr/bin/env node
import { systemClock } from '../../src/index.ts'
import { KNOWN_STORAGES } from './known-storages.ts'
import { runCli } from './run-cli.ts'

// The code, not `process.exit`: what is printed must get out first.
process.exitCode = await runCli(process.argv.slice(2), {
  storages: KNOWN_STORAGES,
  env: process.env,
  fetch: (request) => fetch(request),
  clock: systemClock,
  print: (line) => console.log(line),
  printError: (line) => console.error(line),
  input: () => process.stdin,
  output: () => process.stdout,
  terminal: process.stderr.isTTY ? process.stderr : undefined,
  signals: process,
  now: () => performance.now(),
  exitNow: (code) => process.exit(code),
})
