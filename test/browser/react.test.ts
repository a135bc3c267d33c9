// @module-tag slow

import { expect, it } from 'vitest'
import type * as Script from './pages/react.ts'
import { inChromium, scriptIn } from './support.ts'

const LOADING = { bodies: [], status: 'loading' }

inChromium('useStream', (browser) => {
  const script = async () => scriptIn<typeof Script>(await browser.page(), 'react')

  it('shows history and live records of one session in StrictMode, which unmounting ends', async () => {
    expect(await (await script()).followAndUnmount()).toEqual({
      renders: [LOADING, { bodies: ['a', 'b'], status: 'live' }, { bodies: ['a', 'b', 'c'], status: 'live' }],
      sessions: 1,
      whileMounted: 1,
      afterwards: 0,
    })
  })

  it('keeps its session when handle and query are re-created with equal values', async () => {
    expect(await (await script()).renderAgain()).toEqual({ unchanged: 1, changed: 2, bodies: ['8', '9'] })
  })

  it('never shows records of the previous stream, and ends its session', async () => {
    expect(await (await script()).changeStream()).toEqual({
      renders: [
        LOADING,
        { bodies: ['first'], status: 'live' },
        LOADING,
        { bodies: ['second'], status: 'live' },
        { bodies: ['second', 'more'], status: 'live' },
        LOADING,
      ],
      reads: [0, 1, 0],
    })
  })

  it('reports the end of a bounded session, and a failure with the records before it', async () => {
    expect(await (await script()).endings()).toEqual({
      ended: { bodies: ['a', 'b'], status: 'ended' },
      failed: { bodies: [], status: 'error', code: 'basin_not_found' },
      invalid: { bodies: [], status: 'error', code: 'invalid' },
      closed: { bodies: ['a', 'b', 'c'], status: 'error', code: 'closed' },
    })
  })

  it('reads nothing while hidden, and everything when shown again', async () => {
    expect(await (await script()).hide()).toEqual({
      whileHidden: 0,
      renders: [LOADING, { bodies: ['a'], status: 'live' }, { bodies: ['a', 'b'], status: 'live' }],
    })
  })

  it('hydrates server output, and opens no session on the server', async () => {
    expect(await (await script()).hydrate()).toEqual({
      html: expect.stringContaining('<p>loading 0</p>'),
      onServer: 0,
      renders: [LOADING, { bodies: ['a'], status: 'live' }],
      warnings: [],
    })
  })
})
