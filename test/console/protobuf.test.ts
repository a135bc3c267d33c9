import { create, createFileRegistry, fromJson, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import {
  formatOf,
  previewOf,
  protobufTree,
  protobufTypesOf,
  renderBody,
} from '../../adapters/console/stream/body.ts'
import { utf8 } from '../../src/model/bytes.ts'

const field = (name: string, number: number, type: string, more: object = {}) => ({
  ...{ name, jsonName: name, number, type: `TYPE_${type}`, label: 'LABEL_OPTIONAL' },
  ...more,
})

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
  it('is JSON with the names and values of its type, integers with every digit', () => {
    expect(protobufTree(ORDER, TYPES, 'shop.Order')?.text).toBe(
      '{"id":"18446744073709551615","customer":{"name":"Ada"},"state":"PAID","counts":[1,-2,300],"tags":["a","b"]}',
    )
  })

  it.each([
    ['of a type that is not loaded', ORDER, 'shop.Other'],
    ['that is text', utf8('no protobuf'), 'shop.Order'],
    ['that is cut', ORDER.subarray(0, -1), 'shop.Order'],
  ])('is nothing %s', (_, bytes, type) => {
    expect(protobufTree(bytes, TYPES, type)).toBeUndefined()
    expect(protobufTree(bytes, undefined, type)).toBeUndefined()
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
    const chosen = { ...AUTO, type: 'shop.Order.Customer' }
    expect(formatOf(other('application/protobuf; proto=a.B'), chosen).type).toBe('shop.Order.Customer')
    expect(formatOf(other('application/protobuf; proto=a.B'), AUTO).type).toBe('a.B')
    expect(formatOf(other('application/json'), AUTO).as).toBe('auto')
    expect(formatOf(record, { ...AUTO, as: 'hex' }).as).toBe('hex')
    expect(previewOf(record, AUTO)).toContain('"customer":{"name":"Ada"}')
    expect(previewOf({ ...record, headers: [], body: Uint8Array.of(1, 0xff) }, AUTO)).toBe('01 ff')
    expect(renderBody(utf8('{'), { ...AUTO, as: 'protobuf' }).note).toBe('Not decoded, shown as hex')
  })

  it('refuses files that are no descriptor sets', () => {
    expect(() => protobufTypesOf(utf8('syntax = "proto3";'))).toThrow()
    expect(() => protobufTypesOf(new Uint8Array())).toThrow(RangeError)
  })
})
