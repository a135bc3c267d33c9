import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Starts Chromium, or the browser in the environment variable `CHROMIUM_PATH`. */
export async function launchChromium() {
  const { CHROMIUM_PATH } = process.env
  const executablePath = (CHROMIUM_PATH ? [CHROMIUM_PATH] : PLACES).find((path) => existsSync(path))
  assert.ok(executablePath, 'Chromium was not found; set CHROMIUM_PATH')
  return await chromium.launch({ executablePath, args: ['--no-sandbox'], headless: true })
}
