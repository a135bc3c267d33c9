import { onTestFinished } from 'vitest'
import { aegis256 } from '../../../adapters/aegis-256/index.ts'
import { serve } from '../../../adapters/node/index.ts'
import { type Engine, open } from '../../../src/index.ts'
import { testClock } from '../../support/index.ts'
import { collect } from './collect.ts'
import {
  BASIN,
  EVERYTHING,
  KEYS,
  keyOf,
  PLAIN_TEXTS,
  ROOT_TOKEN,
  SEALED,
  SEALED_TEXTS,
  STREAMS,
} from './material.ts'
import { RecordingClient } from './misplaced-secrets.ts'
import { watchedStorage } from './watched-storage.ts'

/** Records of each stream; the encrypted ones also have a header. */
async function fill(hw: Engine): Promise<void> {
  await hw.createBasin(BASIN)
  const encryptionKey = KEYS['the right key']
  const [body, name, value] = Object.values(SEALED_TEXTS)
  for (const [stream, streamCipher] of Object.entries(SEALED)) {
    await hw.basin(BASIN).reconfigure({ streamCipher })
    await hw.basin(BASIN).createStream(stream)
    const sealed = hw.basin(BASIN).stream(stream, { encryptionKey })
    await sealed.append({ headers: [[name!, value!]], body: body! })
  }
  await hw.basin(BASIN).reconfigure({ streamCipher: null })
  await hw.basin(BASIN).createStream('plain')
  const [plainBody, plainValue] = Object.values(PLAIN_TEXTS)
  await hw
    .basin(BASIN)
    .stream('plain')
    .append({ headers: [['n', plainValue!]], body: plainBody! })
}

/** Tokens of every kind. */
async function tokensOf(hw: Engine): Promise<Record<string, string>> {
  const scope = EVERYTHING
  const limited = { ...scope, streams: { exact: 'elsewhere' } }
  const issued = await hw.issueAccessToken({ id: 'fine', scope })
  const revoked = await hw.issueAccessToken({ id: 'revoked', scope })
  await hw.revokeAccessToken('revoked')
  const expiring = { id: 'expired', scope, expiresAt: new Date(hw.now() + 1) }
  return {
    'the root token': ROOT_TOKEN,
    'an issued token': issued,
    'a limited token': await hw.issueAccessToken({ id: 'limited', scope: limited }),
    'a revoked token': revoked,
    'an expired token': await hw.issueAccessToken(expiring),
    'a token of nobody': Buffer.from(`${keyOf(7)}nobody`).toString('base64'),
  }
}

/**
 * A server of encrypted and plain streams that requires tokens. All its output, and everything reported to
 * its owner, is recorded as evidence.
 */
export async function startServer() {
  const evidence = collect()
  const failed = (source: string) => (error: unknown) => evidence.add('errors', source, error)
  const watched = watchedStorage(evidence)
  const clock = testClock()
  const onError = failed('onError')
  const hw = await open({
    storage: watched.storage,
    clock,
    ciphers: [await aegis256()],
    onBackgroundError: failed('onBackgroundError'),
  })
  const server = await serve(hw, { onError })
  onTestFinished(async () => {
    await Promise.all([server.close({ graceMs: 100 }), hw.close()])
  })
  await hw.setRootToken(ROOT_TOKEN)
  await fill(hw)
  const tokens = await tokensOf(hw)
  await clock.advance(10)
  const material = { basin: BASIN, streams: STREAMS, tokens, keys: KEYS }
  return { hw, clock, server, watched, material, client: new RecordingClient(server.url, evidence), evidence }
}
