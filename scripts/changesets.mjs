// The changesets of a release: files of `.changeset` that name a kind of release and a sentence for the
// changelog. The format is that of the tool Changesets, which would format the whole changelog again.

const KINDS = ['patch', 'minor', 'major']

/** Returns the kind and the sentence of a changeset. Throws if the text is not one. */
export function parseChangeset(name, text) {
  const [, kind, sentence] = /^---\n['"]headwater['"]: (\w+)\n---\n+([\s\S]*\S)\s*$/.exec(text) ?? []
  if (!KINDS.includes(kind)) throw new Error(`${name} is no changeset: see .changeset/README.md`)
  return { kind, sentence }
}

/** Returns the version that follows with the largest of these kinds. */
export function nextVersion(version, kinds) {
  const largest = Math.max(...kinds.map((kind) => KINDS.indexOf(kind)))
  const [major, minor, patch] = version.split('.').map(Number)
  if (KINDS[largest] === 'major') return `${major + 1}.0.0`
  return KINDS[largest] === 'minor' ? `${major}.${minor + 1}.0` : `${major}.${minor}.${patch + 1}`
}

/** Returns the changelog with a version before the others. */
export function withVersion(changelog, version, changesets) {
  const items = changesets.map(({ sentence }) => `- ${sentence.replaceAll('\n', '\n  ')}\n`).join('')
  // A function, because a sentence may contain `$&`.
  return changelog.replace(/^## /m, () => `## ${version}\n\n${items}\n## `)
}
