#!/usr/bin/env node
import { systemClock } from '../../src/index.ts'
import { filesystem } from '../storage/filesystem/index.ts'
import { memory } from '../storage/memory/index.ts'
import { postgres } from '../storage/postgres/index.ts'
import { objectStorage } from '../storage/s3/index.ts'
import { sqlite } from '../storage/sqlite/index.ts'
import { linePrinter } from './output.ts'
import { runCli } from './program.ts'

// Messages to a closed stream must not end a server.
process.stderr.on('error', () => {})
const { env } = process
const exitCode = await runCli(process.argv.slice(2), {
  storages: {
    memory,
    filesystem,
    sqlite,
    postgres: (connectionString) => postgres({ connectionString }),
    s3: (bucket, prefix, options) =>
      objectStorage({
        ...options,
        bucket,
        prefix,
        endpoint: env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL,
        region: env.AWS_REGION ?? env.AWS_DEFAULT_REGION,
      }),
  },
  env,
  fetch: (request) => fetch(request),
  http2: true,
  clock: systemClock,
  print: linePrinter(process.stdout, (error) => {
    console.error(`headwater: cannot write to standard output: ${error.message}`)
    process.exitCode = 1
  }),
  printError: (line) => console.error(line),
  input: () => process.stdin,
  output: () => process.stdout,
  terminal: process.stderr.isTTY ? process.stderr : undefined,
  signals: process,
  now: () => performance.now(),
  exitNow: (code) => process.exit(code),
})
// `process.exit` would drop output that has not been flushed.
process.exitCode ||= exitCode
