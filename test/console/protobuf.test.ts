import { create, createFileRegistry, fromJson, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import type { JsonNode } from '../../adapters/console/stream/json-text.ts'
import { protobufTree, protobufTypesOf } from '../../adapters/console/stream/protobuf.ts'
import { formatOf, previewOf, renderBody } from '../../adapters/console/stream/record.ts'
import { utf8 } from '../../src/model/bytes.ts'

const field = (name: string, number: number, type: string, more: object = {}) => ({
  ...{ name, number, type: `TYPE_${type}`, label: 'LABEL_OPTIONAL' },
  ...more,
})

const SCALARS = [
  'DOUBLE',
  'FLOAT',
  'INT64',
  'UINT64',
  'INT32',
  'FIXED64',
  'FIXED32',
  'BOOL',
  'STRING',
  'BYTES',
]
const OTHER_SCALARS = ['UINT32', 'SFIXED32', 'SFIXED64', 'SINT32', 'SINT64']

const SET = create(FileDescriptorSetSchema)
SET.file.push(
  ...fromJson(FileDescriptorSetSchema, {
    file: [
      {
        name: 'shop.proto',
        package: 'shop',
        syntax: 'proto3',
        enumType: [
          {
            name: 'State',
            value: [
              { name: 'OPEN', number: 0 },
              { name: 'PAID', number: 1 },
            ],
          },
        ],
        messageType: [
          {
            name: 'Order',
            field: [
              field('id', 1, 'UINT64'),
              field('customer', 2, 'MESSAGE', { typeName: '.shop.Order.Customer' }),
              field('state', 3, 'ENUM', { typeName: '.shop.State' }),
              field('counts', 4, 'SINT32', { label: 'LABEL_REPEATED' }),
              field('tags', 5, 'STRING', { label: 'LABEL_REPEATED' }),
            ],
            nestedType: [{ name: 'Customer', field: [field('name', 1, 'STRING')] }],
          },
          {
            name: 'All',
            field: [...SCALARS, ...OTHER_SCALARS].map((type, index) =>
              field(type.toLowerCase(), index + 1, type),
            ),
          },
        ],
      },
    ],
  }).file,
)
const DESCRIPTORS = toBinary(FileDescriptorSetSchema, SET)
const REGISTRY = createFileRegistry(SET)
const TYPES = protobufTypesOf(DESCRIPTORS)

function encoded(type: string, json: object): Uint8Array {
  const schema = REGISTRY.getMessage(type)!
  return toBinary(schema, fromJson(schema, json as never))
}

const ORDER = encoded('shop.Order', {
  id: '18446744073709551615',
  customer: { name: 'Ada' },
  state: 'PAID',
  counts: [1, -2, 300],
  tags: ['a', 'b'],
})
const HEADERS = [[utf8('Content-Type'), utf8('application/x-protobuf; messageType=shop.Order')]] as const
const record = { seqNum: 0, timestamp: 0, headers: HEADERS, body: ORDER, command: undefined }
const AUTO = { as: 'auto', types: TYPES, type: '' } as const

describe('protobuf', () => {
  it('has names, and the values of their types, where the type is loaded', () => {
    expect(protobufTree(ORDER, TYPES, 'shop.Order')?.text).toBe(
      '{"id":18446744073709551615,"customer":{"name":"Ada"},"state":"PAID","counts":[1,-2,300],"tags":"a","tags":"b"}',
    )
  })

  it.each([
    { double: -1.5, float: 0.25, int64: '-9007199254740993', uint64: '9007199254740993', int32: -7 },
    { fixed64: '9007199254740993', fixed32: 4294967295, bool: true, string: 'ä\n', uint32: 4294967295 },
    { sfixed32: -2, sfixed64: '-9007199254740993', sint32: -2147483648, sint64: '-9007199254740993' },
  ])('has the value of each scalar: %j', (values) => {
    const tree = protobufTree(encoded('shop.All', values), TYPES, 'shop.All')!
    const found = Object.fromEntries(tree.items!.map(([name, { text }]) => [name, text]))
    expect(found).toEqual(
      Object.fromEntries(
        Object.entries(values).map(([name, value]) => {
          const isBig = typeof value === 'string' && /^-?\d+$/.test(value)
          return [name, isBig ? value : JSON.stringify(value)]
        }),
      ),
    )
    expect(protobufTree(encoded('shop.All', { bytes: 'AQL/' }), TYPES, 'shop.All')?.text).toBe(
      '{"bytes":0x0102ff}',
    )
  })

  it('has numbers and marked guesses without its type, and for fields that the type does not name', () => {
    expect(protobufTree(ORDER, new Map(), undefined)?.text).toBe(
      '{"1?":-1,"2?":{"1?":"Ada"},"3?":1,"4?":0x0203d804,"5?":"a","5?":"b"}',
    )
    expect(protobufTree(ORDER, TYPES, 'shop.Order.Customer')?.text).toContain('"2?":{"1?":"Ada"}')
    expect(protobufTree(encoded('shop.All', { double: -1.5 }), new Map(), '')?.text).toBe(
      '{"1?":13832806255468478464 or -1.5}',
    )
  })

  it('guesses what a field is that has another type than the loaded one', () => {
    expect(protobufTree(Uint8Array.of(0x0a, 1, 0xff), TYPES, 'shop.Order')?.text).toBe('{"1?":0xff}')
    expect(protobufTree(Uint8Array.of(0x10, 7), TYPES, 'shop.Order')?.text).toBe('{"2?":7}')
  })

  it.each([
    ['text', utf8('no protobuf')],
    ['cut', ORDER.subarray(0, -1)],
    ['a field without a number', Uint8Array.of(0, 1)],
    ['an endless number', new Uint8Array(20).fill(0xff)],
    ['a length beyond the end', Uint8Array.of(0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f)],
  ])('is nothing that is %s', (_, bytes) => {
    expect(protobufTree(bytes, TYPES, 'shop.Order')).toBeUndefined()
  })

  it('ends where messages are nested too deeply', () => {
    let bytes = Uint8Array.of(8, 1)
    for (let depth = 0; depth < 200; depth++) {
      const length = bytes.length < 128 ? [bytes.length] : [(bytes.length & 127) | 128, bytes.length >> 7]
      bytes = Uint8Array.of(0x0a, ...length, ...bytes)
    }
    let node: JsonNode | undefined = protobufTree(bytes, new Map(), '')
    let depth = 0
    for (; node?.items !== undefined; depth++) node = node.items[0]?.[1]
    expect(depth).toBe(51)
  })

  it('is shown where a record states it, with its type or the one that is chosen', () => {
    expect(formatOf(record, AUTO)).toMatchObject({ as: 'protobuf', type: 'shop.Order' })
    const other = (value: string) => ({ ...record, headers: [[utf8('content-type'), utf8(value)]] as const })
    for (const value of [
      'application/protobuf',
      'application/vnd.google.protobuf;charset=x',
      'application/protobuf; proto=a.B',
    ])
      expect(formatOf(other(value), AUTO).as).toBe('protobuf')
    const chosen = { ...AUTO, type: 'shop.All' }
    expect(formatOf(other('application/protobuf; proto=a.B'), chosen).type).toBe('shop.All')
    expect(formatOf(other('application/protobuf; proto=a.B'), AUTO).type).toBe('a.B')
    expect(formatOf(other('application/json'), AUTO).as).toBe('auto')
    expect(formatOf(record, { ...AUTO, as: 'hex' }).as).toBe('hex')
    expect(previewOf(record, AUTO)).toContain('"customer":{"name":"Ada"}')
    expect(previewOf({ ...record, headers: [], body: Uint8Array.of(1, 0xff) }, AUTO)).toBe('01 ff')
    expect(renderBody(utf8('{'), { ...AUTO, as: 'protobuf' }).note).toBe('Not protobuf, shown as hex')
  })

  it('refuses files that are no descriptor sets', () => {
    expect(() => protobufTypesOf(utf8('syntax = "proto3";'))).toThrow(RangeError)
    expect(() => protobufTypesOf(new Uint8Array())).toThrow(RangeError)
  })
})
