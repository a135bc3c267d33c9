const DAY_MS = 86_400_000

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' })
const weekday = new Intl.DateTimeFormat(undefined, { weekday: 'long' })
const date = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'medium' })
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' })

/** Fills a `time` element, with the full date as its title. */
export function showTime(element: HTMLTimeElement, when: Date, text = clock.format(when)): void {
  element.dateTime = when.toISOString()
  element.title = full.format(when)
  element.textContent = text
}

export function isSameDay(one: Date, other: Date): boolean {
  return one.toDateString() === other.toDateString()
}

/** For example "Today", "Yesterday", "Monday" or "May 4, 2025". */
export function dayName(when: Date, now = new Date()): string {
  const days = Math.round((startOfDay(now) - startOfDay(when)) / DAY_MS)
  if (days >= 0 && days <= 1) return capitalised(relative.format(-days, 'day'))
  return days > 0 && days < 7 ? weekday.format(when) : date.format(when)
}

/** The time for today, the day for earlier dates. */
export function timeOrDay(when: Date): string {
  return isSameDay(when, new Date()) ? clock.format(when) : dayName(when)
}

function startOfDay(when: Date): number {
  return new Date(when.getFullYear(), when.getMonth(), when.getDate()).getTime()
}

function capitalised(text: string): string {
  return text.charAt(0).toLocaleUpperCase() + text.slice(1)
}
