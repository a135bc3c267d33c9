import fc from 'fast-check'
import {
  type CreateBasinBody,
  type CreateStreamBody,
  decodeCreateBasin,
  decodeCreateStream,
  decodeEnsureBasin,
  decodeEnsureStream,
  decodeStreamConfigHeader,
  type EnsureBasinBody,
} from '../../../../src/wire/json-resources.ts'
import { basinConfig, basinConfigForm, CONFIG_WORDS, streamConfig, streamConfigForm } from '../configs.ts'
import { equal } from '../harness/assertions.ts'
import { headwaterError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { basinName, streamName, text } from '../models.ts'
import { jsonBody } from './json-body.ts'

const WORDS = [
  '"basin":',
  '"stream":',
  '"config":',
  '"scope":',
  '"location":',
  '"aws:us-east-1"',
  ...CONFIG_WORDS,
]
const location = fc.stringMatching(/^[A-Za-z0-9:.-]{1,10}$/)
const place = {
  scope: fc.option(text, { nil: undefined }),
  location: fc.option(location, { nil: undefined }),
}

function ensureBasinForm({ config, ...more }: EnsureBasinBody) {
  return { config: basinConfigForm(config), ...more }
}

export const createBasin = jsonBody<CreateBasinBody>({
  name: 'create-basin',
  models: fc.record({ basin: basinName, config: basinConfig, ...place }),
  form: ({ basin, ...body }) => ({ basin, ...ensureBasinForm(body) }),
  decode: decodeCreateBasin,
  words: WORDS,
})

export const ensureBasin = jsonBody<EnsureBasinBody>({
  name: 'ensure-basin',
  models: fc.record({ config: basinConfig, ...place }),
  form: ensureBasinForm,
  decode: decodeEnsureBasin,
  words: WORDS,
})

export const createStream = jsonBody<CreateStreamBody>({
  name: 'create-stream',
  models: fc.record({ stream: streamName, config: streamConfig }),
  form: ({ stream, config }) => ({ stream, config: streamConfigForm(config) }),
  decode: decodeCreateStream,
  words: WORDS,
})

export const ensureStream = jsonBody({
  name: 'ensure-stream',
  models: streamConfig,
  form: streamConfigForm,
  decode: decodeEnsureStream,
  words: WORDS,
})

export const streamConfigHeader = target({
  name: 'stream-config-header',
  models: streamConfig,
  encode: (config) => JSON.stringify(streamConfigForm(config)),
  decode: (input: string) => decodeStreamConfigHeader(input),
  means: (config) => config,
  refuses: headwaterError('bad_header', 'invalid'),
  verify(config) {
    equal(
      decodeStreamConfigHeader(JSON.stringify(streamConfigForm(config))),
      config,
      'the configuration again',
    )
  },
  words: WORDS,
})
