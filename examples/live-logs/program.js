// A program that logs, in place of yours: a line for each request of a shop.
const PATHS = ['/', '/cart', '/checkout', '/products/tea', '/products/cups', '/search?q=spoons']
const random = (below) => Math.floor(Math.random() * below)
let request = 1_000

function log(level, text) {
  console.log(`${new Date().toISOString()} ${level} ${text}`)
}

function serveRequest() {
  const id = `request=${++request}`
  const path = PATHS[random(PATHS.length)]
  const ms = 3 + random(60)
  if (random(3) === 0) log('DEBUG', `cache miss for ${path} ${id}`)
  if (random(30) === 0) {
    log('ERROR', `GET ${path} 500 after ${ms} ms: connection to the database was lost ${id}`)
  } else if (random(12) === 0) log('WARN', `GET ${path} 200 in ${ms * 40} ms, which is slow ${id}`)
  else log('INFO', `GET ${path} 200 in ${ms} ms ${id}`)
  setTimeout(serveRequest, random(600))
}

log('INFO', 'listening on port 3000')
serveRequest()
