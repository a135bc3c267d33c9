import fc from 'fast-check'
import type { BasinConfigInput, StreamConfigInput } from '../../../src/model/config.ts'
import { withoutUndefined } from '../../../src/wire/json-members.ts'
import { integer } from './models.ts'

/** Inputs of configurations: members may be absent, groups are not empty. */
export const streamConfig: fc.Arbitrary<StreamConfigInput> = present({
  storageClass: fc.constantFrom('standard', 'express'),
  retentionPolicy: fc.oneof(
    fc.constant('infinite' as const),
    integer.map((seconds) => ({ ageSeconds: Math.max(seconds, 1) })),
  ),
  timestamping: present({
    mode: fc.constantFrom('client-prefer', 'client-require', 'arrival'),
    uncapped: fc.boolean(),
  }).filter((group) => Object.keys(group).length > 0),
  deleteOnEmpty: fc.record({ minAgeSeconds: integer }),
})

export const basinConfig: fc.Arbitrary<BasinConfigInput> = present({
  defaultStreamConfig: streamConfig.filter((config) => Object.keys(config).length > 0),
  streamCipher: fc.constantFrom('aegis-256', 'aes-256-gcm'),
  createStreamOnAppend: fc.boolean(),
  createStreamOnRead: fc.boolean(),
})

export function streamConfigForm({
  storageClass,
  retentionPolicy,
  timestamping,
  deleteOnEmpty,
}: StreamConfigInput) {
  return withoutUndefined({
    storage_class: storageClass,
    retention_policy:
      retentionPolicy === 'infinite'
        ? { infinite: {} }
        : retentionPolicy && { age: retentionPolicy.ageSeconds },
    timestamping,
    delete_on_empty: deleteOnEmpty && { min_age_secs: deleteOnEmpty.minAgeSeconds },
  })
}

export function basinConfigForm(config: BasinConfigInput) {
  return withoutUndefined({
    default_stream_config: config.defaultStreamConfig && streamConfigForm(config.defaultStreamConfig),
    stream_cipher: config.streamCipher,
    create_stream_on_append: config.createStreamOnAppend,
    create_stream_on_read: config.createStreamOnRead,
  })
}

/** Parts of the JSON of these documents, for mutations. */
export const CONFIG_WORDS = [
  ...['"storage_class":', '"retention_policy":', '"timestamping":', '"delete_on_empty":', '"min_age_secs":'],
  ...['"default_stream_config":', '"stream_cipher":', '"create_stream_on_append":', '"uncapped":', '"mode":'],
  ...[
    '"age":',
    '"infinite":{}',
    '{}',
    '[]',
    'null',
    'true',
    '{"__proto__":',
    '"constructor":',
    ',',
    ':',
    '}',
  ],
]

function present<Shape extends object>(
  members: { readonly [Name in keyof Shape]: fc.Arbitrary<NonNullable<Shape[Name]>> },
): fc.Arbitrary<Partial<Shape>> {
  return fc.record(members, { requiredKeys: [] }) as unknown as fc.Arbitrary<Partial<Shape>>
}
