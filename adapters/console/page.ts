/**
 * The console as a page that the HTTP handler serves.
 *
 * @packageDocumentation
 */

/// <reference path="./assets.d.ts" />
import type { HtmlPage } from '../http/index.ts'

const HTML = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>headwater console</title>
<link rel="icon" href="data:,">
<script type="module" src="./console.js"></script>
</head>
<body>
<noscript>The headwater server is running. Its console needs JavaScript; docs/server.md shows how to use the server with curl.</noscript>
</body>
</html>
`

const POLICY = [
  `default-src 'none'`,
  `script-src 'self'`,
  `connect-src 'self'`,
  'img-src data:',
  `base-uri 'none'`,
  `form-action 'none'`,
  `frame-ancestors 'none'`,
].join('; ')

/**
 * Returns the console as a page for the option `page` of `createHandler` and `serve`. It loads one script,
 * and connects only to the server that it came from.
 */
export function consolePage(): HtmlPage {
  return {
    html: HTML,
    contentSecurityPolicy: POLICY,
    scripts: { 'console.js': async () => (await import('./start.ts?script')).default },
  }
}
