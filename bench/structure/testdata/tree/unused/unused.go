package unused

func forgotten() {}
