import { BasinList } from './basins/basin-list.tsx'
import { BasinView } from './basins/basin-view.tsx'
import type { Route } from './route.ts'
import { StreamView } from './stream/stream-view.tsx'
import { TokenList } from './tokens/token-list.tsx'
import { Usage } from './usage/usage.tsx'

/** What a route shows. */
export function View({ route }: { readonly route: Route }) {
  switch (route.view) {
    case 'basins':
      return <BasinList />
    case 'basin':
      return <BasinView key={route.basin} basin={route.basin} tab={route.tab} />
    case 'stream':
      return (
        <StreamView
          key={`${route.basin}/${route.stream}`}
          basin={route.basin}
          stream={route.stream}
          tab={route.tab}
        />
      )
    case 'tokens':
      return <TokenList />
    case 'usage':
      return (
        <>
          <h1>Usage</h1>
          <Usage of={{}} />
        </>
      )
  }
}
