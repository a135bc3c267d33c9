import { describe } from 'vitest'
import { endure } from './campaign.ts'

describe('in memory', () => endure('memory'))
describe('on the filesystem', () => endure('filesystem'))
