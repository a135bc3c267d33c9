import { describe, it } from 'vitest'
import { PLACES, play, scenariosOf } from './transcripts.ts'

interface Transcripts {
  readonly name: string
  readonly places: readonly (keyof typeof PLACES)[]
  readonly tags?: string[]
}

const TRANSCRIPTS: readonly Transcripts[] = [
  { name: 'help', places: ['nothing'] },
  { name: 'usage-errors', places: ['nothing'] },
  { name: 'token-usage-errors', places: ['nothing'] },
  { name: 'serve', places: ['nothing'] },
  { name: 'directories', places: ['nothing'] },
  { name: 'transfers', places: ['nothing'], tags: ['slow'] },
  { name: 'records', places: ['a server', 'a storage'] },
  { name: 'resources', places: ['a server', 'a storage'] },
  { name: 'bench', places: ['a server', 'a storage'], tags: ['slow'] },
  { name: 'tokens', places: ['a server with tokens', 'a storage'] },
  { name: 'contexts', places: ['a server with tokens'] },
]

describe.each(TRANSCRIPTS)('$name', ({ name, places, tags = [] }) => {
  const scenarios = scenariosOf(name)
  describe.each(places)('with %s', { tags }, (place) => {
    it.each(scenarios)('$title', (scenario) => play(scenario, PLACES[place]))
  })
})
