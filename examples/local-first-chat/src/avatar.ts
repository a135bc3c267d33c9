const HUES = 360

/** Shows initials on a colour that depends on the name only. */
export function showAvatar(element: HTMLElement, name: string): void {
  const words = name.split(/\s+/).filter((word) => word !== '')
  const initials = words.length > 1 ? [words[0]!, words.at(-1)!] : words
  element.textContent = initials.map((word) => [...word][0]!.toLocaleUpperCase()).join('')
  element.style.setProperty('--hue', String(hueOf(name)))
}

function hueOf(name: string): number {
  let hash = 0
  for (const char of name) hash = (hash * 31 + char.codePointAt(0)!) % 1_000_003
  return (hash * 47) % HUES
}
