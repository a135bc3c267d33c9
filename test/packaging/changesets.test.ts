import { describe, expect, it } from 'vitest'
import { nextVersion, parseChangeset, withVersion } from '../../scripts/changesets.mjs'

describe('a changeset', () => {
  it('has a kind of release and a sentence for the changelog', () => {
    const text = `---\n'headwater': minor\n---\n\nAdd a command,\nand an option.\n`
    expect(parseChangeset('quiet-rivers-run', text)).toEqual({
      kind: 'minor',
      sentence: 'Add a command,\nand an option.',
    })
  })

  it.each([
    ['without a kind', 'Add a command.\n'],
    ['of an unknown kind', `---\n'headwater': huge\n---\n\nAdd a command.\n`],
    ['without a sentence', `---\n'headwater': minor\n---\n\n`],
  ])('%s is rejected', (_, text) => {
    expect(() => parseChangeset('quiet-rivers-run', text)).toThrow('quiet-rivers-run is no changeset')
  })
})

it.each([
  ['0.1.0', ['patch'], '0.1.1'],
  ['0.1.4', ['patch', 'minor', 'patch'], '0.2.0'],
  ['1.9.9', ['minor'], '1.10.0'],
  ['1.2.3', ['minor', 'major'], '2.0.0'],
])('the version after %s with %j is %s', (version, kinds, next) => {
  expect(nextVersion(version, kinds)).toBe(next)
})

it('a new version precedes the others in the changelog', () => {
  const changesets = [
    { kind: 'minor', sentence: 'Add a command,\nand an option.' },
    { kind: 'patch', sentence: 'Fix $& in names.' },
  ]
  const changelog = '# Changelog\n\n## 0.1.0\n\nThe first version.\n'
  expect(withVersion(changelog, '0.2.0', changesets)).toBe(
    '# Changelog\n\n## 0.2.0\n\n- Add a command,\n  and an option.\n- Fix $& in names.\n\n## 0.1.0\n\nThe first version.\n',
  )
})
