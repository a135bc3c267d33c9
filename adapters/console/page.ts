/// <reference path="./assets.d.ts" />
import type { HtmlPage } from '../http/index.ts'
import bundle from './page-script.ts?bundle'

const HTML = `<!doctype html>
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
<script type="module">${bundle.script}</script>
</body>
</html>
`

const PAGE: HtmlPage = {
  html: HTML,
  contentSecurityPolicy: [
    `default-src 'none'`,
    `script-src '${bundle.hash}'`,
    `connect-src 'self'`,
    'img-src data:',
    ...[`base-uri 'none'`, `form-action 'none'`, `frame-ancestors 'none'`],
  ].join('; '),
}

/**
 * Returns the console as a page for the option `page` of `createHandler` and `serve`. It is one document that
 * loads nothing else and connects only to the server that it came from.
 */
export function consolePage(): HtmlPage {
  return PAGE
}
