import type { Basin, Headwater, Stream } from '../../src/index.ts'
import { basinNameProblem, streamNameProblem } from '../../src/model/names.ts'
import type { CliContext } from './context.ts'
import { CliError, printable, quoteArg, quoteName } from './errors.ts'

const BASIN_VARIABLE = 'HEADWATER_BASIN'

export interface StreamName {
  readonly basin: string
  readonly stream: string
}

/** A basin, or one of its streams. */
export type ResourceName = StreamName | { readonly basin: string; readonly stream?: undefined }

/** Parses `BASIN/STREAM`. @throws CliError with exit code 2. */
export function parseStreamName(text: string, env: CliContext['env']): StreamName {
  const name = parseResourceName(text, env)
  if (name.stream !== undefined) return name
  const example = env[BASIN_VARIABLE] ? `, or \`/STREAM\` for a stream of ${BASIN_VARIABLE}` : ''
  throw new CliError(2, `${quoteName(text)} is not the name of a stream; expected \`BASIN/STREAM\`${example}`)
}

/** Parses `BASIN` or `BASIN/STREAM`. @throws CliError with exit code 2. */
export function parseResourceName(text: string, env: CliContext['env']): ResourceName {
  const { basin, rest } = splitName(text, env)
  if (rest === undefined) return { basin }
  const problem = streamNameProblem(rest)
  if (problem !== undefined) throw new CliError(2, `invalid name ${quoteName(text)}: ${problem}`)
  return { basin, stream: rest }
}

/** Splits a name after its basin, which is validated. What follows is not. */
export function splitName(
  text: string,
  env: CliContext['env'],
): { readonly basin: string; readonly rest: string | undefined } {
  const slash = text.indexOf('/')
  const given = slash < 0 ? text : text.slice(0, slash)
  const basin = given === '' && slash === 0 ? env[BASIN_VARIABLE] || undefined : given
  if (basin === undefined) {
    throw new CliError(2, `${quoteName(text)} has no basin; set ${BASIN_VARIABLE} or write BASIN/STREAM`)
  }
  const problem = basinNameProblem(basin)
  if (problem !== undefined) {
    const source = given === '' && slash === 0 ? ` from ${BASIN_VARIABLE}` : ''
    throw new CliError(2, `invalid basin ${quoteArg(basin)}${source}: ${problem}`)
  }
  return { basin, rest: slash < 0 ? undefined : text.slice(slash + 1) }
}

/** Returns the name as the user would type it. */
export function nameText({ basin, stream }: ResourceName): string {
  return printable(stream === undefined ? basin : `${basin}/${stream}`)
}

/** Returns a handle of the stream. Using it creates nothing, unless the basin permits that. */
export function streamOf(hw: Headwater, { basin, stream }: StreamName, encryptionKey?: string): Stream {
  return hw.basin(basin, { autoCreate: false }).stream(stream, { encryptionKey })
}

/** Returns a handle of a basin or a stream. */
export function resourceOf(hw: Headwater, name: ResourceName): Basin | Stream {
  return name.stream === undefined ? hw.basin(name.basin) : streamOf(hw, name)
}
