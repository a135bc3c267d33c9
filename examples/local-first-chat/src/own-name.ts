import { keep, kept } from './kept.ts'

const KEY = 'brook/name'
const NAMES = ['Beaver', 'Heron', 'Kingfisher', 'Newt', 'Otter', 'Salmon', 'Trout', 'Wagtail']

/** A tab keeps its own, so that two tabs can be two people; a new one begins with the last that was chosen. */
export function ownName(): string {
  return (
    kept(KEY, () => sessionStorage) ??
    setOwnName(kept(KEY) ?? NAMES[Math.floor(Math.random() * NAMES.length)]!)
  )
}

export function setOwnName(name: string): string {
  keep(KEY, name, () => sessionStorage)
  keep(KEY, name)
  return name
}
