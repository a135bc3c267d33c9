#!/usr/bin/env node
import { runCli } from './run-cli.ts'
import { openService } from './service.ts'

// The code, not `process.exit`: what is printed must get out first.
process.exitCode = await runCli(process.argv.slice(2), {
  openService,
  print: (line) => console.log(line),
  printError: (line) => console.error(line),
  signals: process,
  now: () => performance.now(),
  exitNow: (code) => process.exit(code),
})
