import { SYSTEM_STREAM_CONFIG } from '../../src/core/config.ts'
import { type Headwater, HeadwaterError, type RetentionPolicy } from '../../src/index.ts'
import { CliError } from './errors.ts'
import { nameText, type ResourceName, retentionText, type StreamName, streamOf } from './values.ts'

/** How a missing stream is treated. */
interface Creation {
  readonly create: boolean
  readonly fencingToken?: string | undefined
  readonly matchSeqNum?: number | undefined
  readonly report: (line: string) => void
}

/**
 * Resolves to a function that creates the basin and the stream and reports that, undefined if they exist. A
 * caller who may not ask or create is left to the append, which the basin may permit to create the stream.
 *
 * @throws CliError if something is missing and `create` is false, or a new stream would refuse the append.
 */
export async function missingCreation(
  hw: Headwater,
  name: StreamName,
  { create, fencingToken = '', matchSeqNum = 0, report }: Creation,
): Promise<(() => Promise<void>) | undefined> {
  const { basin, stream } = name
  const missing = await expectedFailure(streamOf(hw, name).config(), [
    'basin_not_found',
    'stream_not_found',
    'permission_denied',
  ])
  if (missing === undefined || missing === 'permission_denied') return undefined
  const what = missing === 'basin_not_found' ? `basin ${basin}` : `stream ${nameText(name)}`
  if (!create) {
    const remedy = 'create it with `headwater create`, or omit `--no-create`'
    throw new CliError(1, `${what} does not exist; ${remedy}`)
  }
  if (fencingToken !== '') {
    throw new CliError(1, `stream ${nameText(name)} does not exist, and so has no fencing token`)
  }
  if (matchSeqNum > 0) {
    throw new CliError(1, `stream ${nameText(name)} does not exist: its next sequence number would be 0`)
  }
  return async () => {
    const isNew = async (creation: Promise<unknown>) => {
      const refused = await expectedFailure(creation, ['resource_already_exists', 'permission_denied'])
      return refused === undefined
    }
    if (missing === 'basin_not_found' && (await isNew(hw.createBasin(basin)))) {
      report(`Created basin ${basin}`)
    }
    if (await isNew(hw.basin(basin).createStream(stream))) {
      report(creationText(name, await retentionOf(hw, name)))
    }
  }
}

/** Says what was created, and how long it keeps records. */
export function creationText(name: ResourceName, retention: RetentionPolicy | undefined): string {
  const [what, keeper] = name.stream === undefined ? ['basin', 'its streams keep'] : ['stream', 'it keeps']
  const kept = retention === undefined ? '' : `; ${keeper} records ${retentionText(retention)}`
  return `Created ${what} ${nameText(name)}${kept}`
}

/**
 * Resolves to the retention of a stream, or that of the new streams of a basin. Undefined if the caller may
 * not ask, or the server does not tell: the resource exists all the same.
 */
export async function retentionOf(hw: Headwater, name: ResourceName): Promise<RetentionPolicy | undefined> {
  try {
    if (name.stream !== undefined) return (await streamOf(hw, name).config()).retentionPolicy
    const { defaultStreamConfig } = await hw.basin(name.basin).config()
    return defaultStreamConfig.retentionPolicy ?? SYSTEM_STREAM_CONFIG.retentionPolicy
  } catch (error) {
    if (HeadwaterError.is(error)) return undefined
    throw error
  }
}

/** Resolves to the code that a call fails with if it is an expected one; to undefined if it succeeds. */
async function expectedFailure(
  call: Promise<unknown>,
  expected: readonly string[],
): Promise<string | undefined> {
  try {
    await call
  } catch (error) {
    if (HeadwaterError.is(error) && expected.includes(error.code)) return error.code
    throw error
  }
  return undefined
}
