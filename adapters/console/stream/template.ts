import type { TextInput } from './append-input.ts'

/** The values of `{{…}}` in a template. */
export const PLACEHOLDERS = ['{{n}}', '{{now}}', '{{random}}'] as const

/** A record of a template: `{{n}}` counts from 1, `{{now}}` is the time, `{{random}}` is below 1,000. */
export function recordOfTemplate(
  { body = '', headers = [] }: TextInput & { readonly body?: string | undefined },
  n: number,
  now: number,
  random: number,
): TextInput {
  const values: Readonly<Record<string, string>> = {
    n: String(n),
    now: new Date(now).toISOString(),
    random: String(Math.floor(random * 1000)),
  }
  const filled = (text: string) => text.replace(/\{\{(n|now|random)\}\}/g, (_, name) => values[name]!)
  return {
    body: filled(body),
    ...(headers.length > 0 && {
      headers: headers.map(([name, value]) => [filled(name), filled(value)] as const),
    }),
  }
}
