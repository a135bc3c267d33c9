import { NEW_BASIN_CONFIG } from '../core/new-basin-config.ts'
import { checkStreamConfig } from '../model/config-validation.ts'
import { refuse } from '../model/errors.ts'
import { basinNameProblem, streamNameProblem } from '../model/names.ts'
import type { CreationPolicy, EngineContext, StreamRef } from './context.ts'
import { streamKey } from './documents.ts'
import { streamNotFound } from './existence-errors.ts'
import { activeBasin, existingBasin } from './find-basin.ts'
import { newBasin, putBasin } from './new-basin.ts'
import { addStream, newStream } from './new-stream.ts'

/**
 * Creates the stream that an append or a read came for, if the basin's configuration allows (wire-behaviour.md 8.6), or always: then a
 * missing basin too. Losing a race against another creation is as good as winning it.
 */
export async function createOnFirstUse(
  engine: EngineContext,
  ref: StreamRef,
  purpose: 'append' | 'read',
  policy: CreationPolicy,
): Promise<void> {
  refuse(streamNameProblem(ref.stream), 'stream')
  if (policy.config !== undefined) checkStreamConfig(policy.config)
  const { catalog } = engine
  if (policy.always) await createBasinIfMissing(engine, ref.basin)
  await catalog.change(streamKey(ref.basin, ref.stream), async (commit) => {
    const basin = await existingBasin(engine, ref.basin)
    const { createStreamOnAppend, createStreamOnRead } = basin.value.config
    const allowed = policy.always || (purpose === 'append' ? createStreamOnAppend : createStreamOnRead)
    if (!allowed) throw streamNotFound(ref)
    await activeBasin(engine, ref.basin)
    if ((await catalog.stream(ref.basin, ref.stream)) !== undefined) return
    await addStream(engine, commit, newStream(engine, basin.value, ref, policy.config ?? {}, null), basin)
  })
}

async function createBasinIfMissing(engine: EngineContext, name: string): Promise<void> {
  const { catalog } = engine
  if ((await catalog.basin(name)) !== undefined) return
  refuse(basinNameProblem(name), 'basin')
  await catalog.change(name, async (commit) => {
    if ((await catalog.basin(name)) !== undefined) return
    await commit([putBasin(await newBasin(engine, name, NEW_BASIN_CONFIG), null)])
  })
}
