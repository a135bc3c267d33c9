/// <reference path="./assets.d.ts" />
import { utf8 } from '../../src/model/bytes.ts'
import { encodeBase64 } from '../../src/wire/base64.ts'
import type { HtmlPage } from '../http/index.ts'
import consoleProgram from './program.tsx?function'
import { sha256 } from './sha256.ts'

/**
 * The text of the program as it runs here, which a bundler may have changed. esbuild calls `__name` for each
 * function if it is asked to keep their names.
 */
const scriptOfPage = () => `const __name = (named) => named;\n(${consoleProgram})().showPage()`

const htmlOf = (script: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>headwater console</title>
<link rel="icon" href="data:,">
</head>
<body>
<noscript>The headwater server is running. Its console needs JavaScript; docs/server.md shows how to use the server with curl.</noscript>
<script type="module">${script}</script>
</body>
</html>
`

let page: HtmlPage | undefined

/**
 * Returns the console as a page for the option `page` of `createHandler` and `serve`. It is one document that
 * loads nothing else and connects only to the server that it came from.
 *
 * ```ts
 * const handler = createHandler(hw, { page: consolePage() })
 * ```
 */
export function consolePage(): HtmlPage {
  page ??= createPage()
  return page
}

function createPage(): HtmlPage {
  const script = scriptOfPage()
  return {
    html: htmlOf(script),
    contentSecurityPolicy: [
      `default-src 'none'`,
      `script-src 'sha256-${encodeBase64(sha256(utf8(script)))}'`,
      `connect-src 'self'`,
      'img-src data:',
      ...[`base-uri 'none'`, `form-action 'none'`, `frame-ancestors 'none'`],
    ].join('; '),
  }
}
