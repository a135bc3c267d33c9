import { playSeeds } from '../harness/seeds.ts'
import { DEVICES } from './simulation.ts'

await playSeeds(DEVICES)
