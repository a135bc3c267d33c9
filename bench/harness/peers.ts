import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The packages of `bench/package.json`, with their installed versions. */
export function peerVersions(): Readonly<Record<string, string>> {
  return Object.fromEntries(
    peers()
      .filter(isInstalled)
      .map((peer) => [peer, versionIn(join('bench', 'node_modules', peer))]),
  )
}

export function arePeersInstalled(): boolean {
  return peers().every(isInstalled)
}

/** Of the package in a directory. */
export function versionIn(directory: string): string {
  return (JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as { version: string }).version
}

function peers(): string[] {
  const { devDependencies } = JSON.parse(readFileSync(join('bench', 'package.json'), 'utf8')) as {
    devDependencies: Record<string, string>
  }
  return Object.keys(devDependencies)
}

function isInstalled(peer: string): boolean {
  return existsSync(join('bench', 'node_modules', peer))
}
