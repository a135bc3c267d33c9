import { afterEach, describe, expect, test } from 'vitest'
import { ROUTES } from '../../../adapters/http/routes.ts'
import { document, operations } from './contract.ts'
import { opened } from './opened.ts'
import { callerOf, problemsFound, unseen } from './provoke.ts'
// Their tests run first, and in this process: the last test below asks what all of them have shown.
import './each-operation.ts'
import './replies.ts'

afterEach(() => expect(problemsFound()).toEqual([]))

describe('the document', () => {
  test('has the paths and methods of the handler, and no others', () => {
    const served = ROUTES.flatMap(({ pattern, target }) =>
      Object.keys(target).map((method) => `${method.toLowerCase()} ${pattern}`),
    )
    const durable = ['get', 'head', 'put', 'post', 'delete'].map((method) => `${method} /v1/stream/{path}`)
    const written = operations.map(({ method, path }) => `${method} ${path}`)
    expect(written.sort()).toEqual([...served, ...durable, 'get /'].sort())
  })

  test('has nothing that it does not use', () => {
    const text = JSON.stringify(document)
    const { securitySchemes: _, ...components } = document.components
    const unused = Object.entries(components).flatMap(([kind, entries]) =>
      Object.keys(entries).filter((name) => !text.includes(`"#/components/${kind}/${name}"`)),
    )
    expect(unused).toEqual([])
  })

  test('is served as it is', async () => {
    await using hw = await opened()
    const response = await callerOf(hw)('GET', '/openapi.json')
    expect(await response.json()).toEqual(document)
  })
})

test('each documented response was shown', () => {
  expect(unseen()).toEqual([])
})
