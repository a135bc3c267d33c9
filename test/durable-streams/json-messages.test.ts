import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jsonArray, jsonMessages } from '../../adapters/durable-streams/content.ts'
import { utf8 } from '../../src/model/bytes.ts'

const messagesOf = (text: string) => jsonMessages(utf8(text))

describe('the messages of a JSON body', () => {
  it.each([
    ['{"a":1}', ['{"a":1}']],
    [' 12 ', ['12']],
    ['[]', []],
    [' [ ] ', []],
    ['[1, 2 ,3]', ['1', '2', '3']],
    ['[[1,2],[3]]', ['[1,2]', '[3]']],
    ['["a,b","]","\\"","\\\\",{"]":"[,"}]', ['"a,b"', '"]"', '"\\""', '"\\\\"', '{"]":"[,"}']],
    ['[12345678901234567890, 1.0, {"b":1,"a":2}]', ['12345678901234567890', '1.0', '{"b":1,"a":2}']],
    ['[{\n"a": [\n1]}]', ['{\n"a": [\n1]}']],
  ])('%s', (body, messages) => {
    expect(messagesOf(body)).toEqual(messages)
  })

  it.each(['', '[', '[1,]', '{"a"}', 'undefined', '1 2', '\ufeff1'])('rejects %j', (body) => {
    expect(() => messagesOf(body)).toThrow('not valid JSON')
  })

  it('are the elements of any array, however it is written', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.constantFrom(undefined, 1, '\t'), (values, indent) => {
        const messages = messagesOf(JSON.stringify(values, undefined, indent))
        expect(messages.map((message) => JSON.parse(message))).toEqual(JSON.parse(JSON.stringify(values)))
      }),
    )
  })
})

describe('the JSON array of bodies', () => {
  it('turns what another protocol has written into strings', () => {
    const bodies = ['plain', '', '1],[2', '{"a":1}', '1,2'].map(utf8)
    expect(JSON.parse(jsonArray(bodies))).toEqual(['plain', '', '1],[2', { a: 1 }, '1,2'])
    expect(JSON.parse(jsonArray([Uint8Array.of(0xff)]))).toEqual(['\ufffd'])
    // Together they would be an array of two elements.
    expect(JSON.parse(jsonArray(['[0', '{"a":1}', '1],{}'].map(utf8)))).toEqual(['[0', { a: 1 }, '1],{}'])
  })
})
