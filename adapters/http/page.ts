import { assertMembers, assertText, type Check } from '../../src/model/validation.ts'

/** A self-contained web page, for people who open the address of a handler in a browser. */
export interface Page {
  /** A complete document. Everyone can read it, so it must not contain a secret. */
  readonly html: string
  /** What the page may load and run, as the value of the header `content-security-policy`. */
  readonly contentSecurityPolicy: string
}

/** Throws unless the value is a {@link Page}. */
export const assertPage: Check = (value, field, fail) => {
  assertMembers(value, { html: 'string', contentSecurityPolicy: 'string' }, field, fail, `${field}.`)
  const { html, contentSecurityPolicy } = value as Page
  assertText(html, `${field}.html`, fail)
  assertText(contentSecurityPolicy, `${field}.contentSecurityPolicy`, fail)
}
