import { showPage } from './program.tsx'

showPage()
