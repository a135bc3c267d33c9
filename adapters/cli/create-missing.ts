import { type Engine, HeadwaterError, type RetentionPolicy } from '../../src/index.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../src/model/limits.ts'
import type { Client } from './client.ts'
import { CliError, ServiceError } from './errors.ts'
import { retentionText } from './retention.ts'
import { nameText, type ResourceName, resourcePath, type StreamName } from './stream-name.ts'

/** How missing resources are found and created: over HTTP, or in an engine of this process. */
export interface Creator {
  missingPart(): Promise<'basin' | 'stream' | undefined>
  /** Resolves to whether it did not exist. */
  createBasin(): Promise<boolean>
  createStream(): Promise<boolean>
  /** Resolves to the retention of the stream; undefined if the caller cannot find out. */
  retention(): Promise<RetentionPolicy | undefined>
}

/**
 * Creates the basin and the stream unless they exist, and reports what it has created. A caller who may not
 * ask or create is left to the append, which the basin may permit to create the stream.
 *
 * @throws CliError if something is missing and `create` is false.
 */
export async function createMissing(
  creator: Creator,
  name: StreamName,
  { create, report }: { readonly create: boolean; readonly report: (line: string) => void },
): Promise<void> {
  const missing = await creator.missingPart()
  if (missing === undefined) return
  if (!create) {
    const what = missing === 'basin' ? `basin ${name.basin}` : `stream ${nameText(name)}`
    throw new CliError(
      1,
      `${what} does not exist; create it with \`headwater create\`, or omit \`--no-create\``,
    )
  }
  try {
    if (missing === 'basin' && (await creator.createBasin())) report(`Created basin ${name.basin}`)
    if (await creator.createStream()) report(creationText(name, await creator.retention()))
  } catch (error) {
    if (!isDenied(error)) throw error
  }
}

/** Says what was created, and how long it keeps records. */
export function creationText(name: ResourceName, retention: RetentionPolicy | undefined): string {
  const [what, keeper] = name.stream === undefined ? ['basin', 'its streams keep'] : ['stream', 'it keeps']
  const kept = retention === undefined ? '' : `; ${keeper} records ${retentionText(retention)}`
  return `Created ${what} ${nameText(name)}${kept}`
}

/** Creates through the HTTP API. */
export function serviceCreator(client: Client, name: StreamName): Creator {
  return {
    missingPart: () => missingPart(client, name),
    createBasin: async () => (await createResource(client, { basin: name.basin })) !== undefined,
    createStream: async () => (await createResource(client, name)) !== undefined,
    retention: () => retentionOf(client, name),
  }
}

/** Creates in an engine without the HTTP API, whose code takes longer to load than one append. */
export function engineCreator(engine: Engine, { basin, stream }: StreamName): Creator {
  const isMissing = (error: unknown): 'basin' | 'stream' | undefined => {
    if (!HeadwaterError.is(error)) throw error
    if (error.code === 'basin_not_found') return 'basin'
    if (error.code === 'stream_not_found') return 'stream'
    throw error
  }
  const unlessExists = async (creation: Promise<unknown>): Promise<boolean> => {
    try {
      await creation
      return true
    } catch (error) {
      if (HeadwaterError.is(error) && error.code === 'resource_already_exists') return false
      throw error
    }
  }
  return {
    missingPart: () =>
      engine
        .basin(basin)
        .stream(stream)
        .config()
        .then(() => undefined, isMissing),
    createBasin: () => unlessExists(engine.createBasin(basin)),
    createStream: () => unlessExists(engine.basin(basin).createStream(stream)),
    retention: async () => (await engine.basin(basin).stream(stream).config()).retentionPolicy,
  }
}

async function missingPart(client: Client, name: StreamName): Promise<'basin' | 'stream' | undefined> {
  try {
    await client.send({ method: 'GET', path: resourcePath(name), basin: name.basin })
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'basin_not_found') return 'basin'
    if (error instanceof ServiceError && error.code === 'stream_not_found') return 'stream'
    if (!isDenied(error)) throw error
  }
  return undefined
}

/** Creates a basin or a stream. Resolves to the info as JSON, or undefined if it exists. */
export async function createResource(
  client: Client,
  name: ResourceName,
  config: object = {},
): Promise<string | undefined> {
  const { basin, stream } = name
  try {
    if (stream !== undefined) {
      const body = JSON.stringify({ stream, config })
      return await client.text({ method: 'POST', path: '/streams', basin, body })
    }
    // Only PUT accepts shorter names.
    if (basin.length >= BASIN_NAME_BYTES_MIN_ON_POST) {
      return await client.text({ method: 'POST', path: '/basins', body: JSON.stringify({ basin, config }) })
    }
    if (await basinExists(client, basin)) return undefined
    return await client.text({ method: 'PUT', path: resourcePath(name), body: JSON.stringify({ config }) })
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'resource_already_exists') return undefined
    throw error
  }
}

/**
 * Resolves to the retention of a stream, or that of the new streams of a basin. Undefined if the caller may
 * not ask, or the server does not tell: the resource exists all the same.
 */
export async function retentionOf(client: Client, name: ResourceName): Promise<RetentionPolicy | undefined> {
  const { basin, stream } = name
  const { decodeBasinConfig, decodeStreamConfig } = await import('../../src/wire/json-config.ts')
  const { SYSTEM_STREAM_CONFIG } = await import('../../src/core/config.ts')
  try {
    const call = { method: 'GET', path: resourcePath(name), ...(stream !== undefined && { basin }) } as const
    const config = await client.json(call, (object) =>
      stream === undefined
        ? decodeBasinConfig(object, 'config').defaultStreamConfig
        : decodeStreamConfig(object, 'config'),
    )
    return config?.retentionPolicy ?? SYSTEM_STREAM_CONFIG.retentionPolicy
  } catch (error) {
    if (error instanceof CliError) return undefined
    throw error
  }
}

async function basinExists(client: Client, basin: string): Promise<boolean> {
  try {
    await client.send({ method: 'GET', path: resourcePath({ basin }) })
    return true
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'basin_not_found') return false
    throw error
  }
}

function isDenied(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'permission_denied'
}
