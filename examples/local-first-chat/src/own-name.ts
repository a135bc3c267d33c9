import { keep, kept } from './kept.ts'

const KEY = 'brook/name'
const NAMES = ['Beaver', 'Heron', 'Kingfisher', 'Newt', 'Otter', 'Salmon', 'Trout', 'Wagtail']

/**
 * The name of the user in this tab, so that two tabs can be two users. A new tab starts with the latest name.
 */
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
