import { type Headwater, HeadwaterError } from '../../src/index.ts'
import type { ResourceSpec } from './resource-spec.ts'

/** What was done for a basin or a stream, or would be done. */
export interface ResourceChange {
  readonly action: 'create' | 'reconfigure' | 'keep'
  readonly basin: string
  /** Absent for the basin itself. */
  readonly stream?: string
  /** The members of the configuration that change, such as `retentionPolicy`. */
  readonly members: readonly string[]
}

interface ApplyOptions {
  /** Reports what would be done, and does nothing. */
  readonly dryRun?: boolean
  readonly signal?: AbortSignal | undefined
}

/** A basin or a stream, and what is declared for it. */
interface Resource {
  readonly name: Pick<ResourceChange, 'basin' | 'stream'>
  readonly declared: object
  stored(): Promise<object>
  create(): Promise<unknown>
  reconfigure(): Promise<unknown>
}

/**
 * Creates the basins and streams that are missing, and reconfigures those that differ in what is declared.
 * Deletes nothing. Yields each change once it is made, so that a failure shows what was done before it.
 */
export async function* applyResources(
  hw: Headwater,
  { basins }: ResourceSpec,
  { dryRun = false, signal }: ApplyOptions = {},
): AsyncGenerator<ResourceChange> {
  const options = { signal }
  for (const { name: basin, config, streams } of basins) {
    // Each resource is created here, with what is declared for it.
    const handle = hw.basin(basin, { autoCreate: false })
    yield await applied(
      {
        name: { basin },
        declared: config,
        stored: () => handle.config(options),
        create: () => hw.createBasin(basin, config, options),
        reconfigure: () => handle.reconfigure(config, options),
      },
      dryRun,
    )
    for (const { name: stream, config } of streams) {
      const streamHandle = handle.stream(stream)
      yield await applied(
        {
          name: { basin, stream },
          declared: config,
          stored: () => streamHandle.config(options),
          create: () => handle.createStream(stream, config, options),
          reconfigure: () => streamHandle.reconfigure(config, options),
        },
        dryRun,
      )
    }
  }
}

async function applied(resource: Resource, dryRun: boolean): Promise<ResourceChange> {
  const { name, declared } = resource
  const current = await resource.stored().catch((error) => {
    if (isMissing(error)) return undefined
    throw error
  })
  if (current === undefined) {
    if (!dryRun) await resource.create()
    return { action: 'create', ...name, members: Object.keys(declared) }
  }
  const members = Object.keys(declared).filter(
    (member) => !contains(memberOf(current, member), memberOf(declared, member)),
  )
  if (members.length === 0) return { action: 'keep', ...name, members }
  if (!dryRun) await resource.reconfigure()
  return { action: 'reconfigure', ...name, members }
}

function isMissing(error: unknown): boolean {
  return HeadwaterError.is(error) && (error.code === 'basin_not_found' || error.code === 'stream_not_found')
}

/** Whether a value has everything that is declared. */
function contains(value: unknown, declared: unknown): boolean {
  if (typeof declared !== 'object' || declared === null) return value === declared
  if (typeof value !== 'object' || value === null) return false
  return Object.keys(declared).every((member) =>
    contains(memberOf(value, member), memberOf(declared, member)),
  )
}

function memberOf(value: object, member: string): unknown {
  return (value as Readonly<Record<string, unknown>>)[member]
}
